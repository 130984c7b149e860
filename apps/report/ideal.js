"use strict";

// The idealized model of a training step. Each operation is that of apps/ideal_model.cpp, in its
// order, so that both give the same bits; a test compares them.
function idealBusyShare(stages, microbatches) {
  return microbatches / (microbatches + stages - 1.0);
}

function idealStep(model, devices) {
  const isAlone = devices === 1;
  const replicas = isAlone ? 1.0 : devices / model.stages;
  const growth = model.scaling === "weak" ? replicas : 1.0;
  const busy = idealBusyShare(isAlone ? 1 : model.stages, isAlone ? 1 : model.microbatches);
  const compute = model.compute_ms * growth / devices + (isAlone ? 0.0 : model.split_ms);
  const bubble = compute / busy - compute;
  const exposed = isAlone ? 0.0 : model.communication_ms - model.hidden_ms;
  const step = compute + bubble + model.fixed_ms + exposed;
  const batch = model.batch * growth;
  const speedUp = (model.compute_ms + model.fixed_ms) * growth / step;
  return {
    devices: devices,
    batch: batch,
    compute_ms: compute,
    bubble_ms: bubble,
    fixed_ms: model.fixed_ms,
    exposed_ms: exposed,
    step_ms: step,
    samples_per_s: 1000.0 * batch / step,
    speed_up: speedUp,
    efficiency: speedUp / devices,
    device_s: devices * step / 1000.0,
    updates_per_epoch: 1.0 / growth,
  };
}
