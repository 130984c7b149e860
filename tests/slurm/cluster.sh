# A Slurm cluster of one node under $folder, for tests/slurm/run.sh, which sources this: munged, slurmctld
# and slurmd with their own ports, key and socket. Nothing outside $folder is read or changed.

need() { command -v "$1" >/dev/null 2>&1; }

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 10000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}

write_configuration() {
  local user node; user=$(id -un); node=$(hostname -s)
  mkdir -p "$folder/state" "$folder/spool" "$folder/pmix"
  (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
  # More CPUs than the machine may have: two jobs of two ranks run side by side. A requeued job waits
  # for cred_expire seconds, else two minutes; what Slurm still sends to a failed node must arrive before.
  cat >"$folder/slurm.conf" <<CONFIGURATION
ClusterName=weft
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=15
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=20
NodeName=$node NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONFIGURATION
  # What a dead step leaves there is in the way of another one with its number.
  echo "PMIxCliTmpDirBase=$folder/pmix" >"$folder/mpi.conf"
}

# daemon NAME COMMAND...: in the background, from $folder; its process id goes to $folder/NAME.own.
daemon() {
  local name=$1; shift
  (cd "$folder" && exec "$@" >>"$folder/$name.out" 2>&1 </dev/null) &
  echo $! >"$folder/$name.own"
  disown $!  # its end is no news
}

node_is() { sinfo -h -o %t 2>/dev/null | grep -qE "^($1)"; }

start_node() {
  daemon slurmd slurmd -D
  wait_until 60 "the node to be there" node_is "idle|mix|alloc"
}

start_cluster() {
  write_configuration
  daemon munged munged --foreground --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
  wait_until 30 "munged to answer" munge -n -S "$folder/munge.socket" -o /dev/null
  daemon slurmctld slurmctld -D
  start_node
}

# Process ids of daemons, slurmstepd, scripts, ranks: what was started for this cluster and works in
# $folder or has a file of it open. A process that has but the one or the other is someone else's.
cluster_processes() {
  local process
  : "${folder:?}"
  for process in $(find /proc/[0-9]*/cwd /proc/[0-9]*/fd -maxdepth 1 \
    \( -lname "$folder" -o -lname "$folder/*" \) 2>/dev/null | cut -d/ -f3 | sort -u); do
    grep -qzxF "SLURM_CONF=$folder/slurm.conf" "/proc/$process/environ" 2>/dev/null && echo "$process"
  done
}

# Kills the node: slurmd and all that runs on it, but for what the controller's machine runs. All are
# stopped before one is killed, so that none sees another one's end.
kill_node() {
  local process keep signal
  keep=" $(cat "$folder/munged.own") $(cat "$folder/slurmctld.own") "
  for signal in STOP STOP KILL; do
    for process in $(cat "$folder/slurmd.own") $(cluster_processes); do
      [[ $keep == *" $process "* ]] || kill -s $signal "$process" 2>/dev/null
    done
  done
  scontrol update nodename="$(hostname -s)" state=down reason="killed by a test"
}

stop_cluster() {
  local process id
  for id in "${job[@]}"; do
    if [ -n "$id" ]; then scancel --quiet "$id" 2>/dev/null; fi
  done
  for process in $(seq 20); do
    if [ ${#job[@]} = 0 ] || [ -z "$(squeue -h 2>/dev/null)" ]; then break; fi
    sleep 0.5
  done
  for process in $(cluster_processes); do kill "$process" 2>/dev/null; done
  sleep 1
  for process in $(cluster_processes); do kill -9 "$process" 2>/dev/null; done
}
