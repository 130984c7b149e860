// The sliders of the idealized model: what they are, and what they change.
(function () {
  const start = JSON.parse(document.getElementById("ideal-model").textContent);
  // Name, what it says, least, most, step. Devices are replicas x stages, so that they always fit.
  const sliders = [
    ["replicas", "replicas", 1, 64, 1],
    ["compute_ms", "ms of computing on one device", 1, Math.max(500, 2 * start.compute_ms), 1],
    ["fixed_ms", "ms fixed: data wait and update", 0, Math.max(100, 2 * start.fixed_ms), 1],
    ["communication_ms", "ms of communication", 0, Math.max(100, 2 * start.communication_ms), 1],
    ["hidden_ms", "ms of it hidden", 0, Math.max(100, 2 * start.communication_ms), 1],
    ["split_ms", "ms that splitting costs", 0, 50, 1],
    ["stages", "stages p of a pipeline", 1, 16, 1],
    ["microbatches", "microbatches m", 1, 64, 1],
    ["batch", "samples of a step", 1, Math.max(1024, 2 * start.batch), 1],
  ];
  const colors = { compute_ms: "#0072B2", bubble_ms: "#E69F00", fixed_ms: "#999999", exposed_ms: "#D55E00" };
  const names = { compute_ms: "computing", bubble_ms: "bubble", fixed_ms: "fixed", exposed_ms: "exposed" };
  const values = Object.assign({ replicas: 4 }, start);
  const outputs = {};

  function addSlider([name, text, least, most, step]) {
    const label = document.createElement("label");
    const output = document.createElement("output");
    const input = document.createElement("input");
    Object.assign(input, { type: "range", id: "slide-" + name, min: least, max: most, step: "any" });
    input.value = values[name];
    input.addEventListener("input", function () {
      values[name] = least + Math.round((Number(input.value) - least) / step) * step;
      show();
    });
    output.htmlFor = input.id;
    outputs[name] = output;
    label.append(text + ": ", output, input);
    document.getElementById("sliders").append(label);
  }

  function addScaling() {
    const label = document.createElement("label");
    const box = document.createElement("input");
    Object.assign(box, { type: "checkbox", id: "slide-scaling", checked: start.scaling === "weak" });
    box.addEventListener("change", function () {
      values.scaling = box.checked ? "weak" : "strong";
      show();
    });
    label.append(box, " weak scaling: the samples are each replica's");
    document.getElementById("sliders").append(label);
  }

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function shortNumber(value) {
    return value === 0 || value >= 100 ? value.toFixed(0) : value.toPrecision(3);
  }

  function drawBars(steps, chosen) {
    const plot = document.getElementById("ideal-plot");
    const left = 44, right = 452, top = 40, bottom = 212;
    const most = Math.max(...steps.map((step) => step.step_ms));
    plot.replaceChildren(element("text", { x: 0, y: 14, "font-weight": "bold" }, "A step on N devices, ms"));
    Object.keys(names).forEach(function (part, i) {
      plot.append(element("rect", { x: 110 * i, y: 22, width: 12, height: 10, fill: colors[part] }),
        element("text", { x: 110 * i + 17, y: 31 }, names[part]));
    });
    for (const share of [0, 0.5, 1]) {
      const y = bottom - share * (bottom - top);
      plot.append(element("line", { x1: left, x2: right, y1: y, y2: y, stroke: "#ddd" }),
        element("text", { x: left - 5, y: y + 4, "text-anchor": "end" }, shortNumber(share * most)));
    }
    const pitch = (right - left) / steps.length;
    steps.forEach(function (step, i) {
      let y = bottom;
      for (const part in names) {
        const height = (bottom - top) * step[part] / most;
        y -= height;
        plot.append(element("rect", {
          x: left + pitch * (i + 0.15), y: y, width: pitch * 0.7, height: height, fill: colors[part],
        }));
      }
      const isChosen = step.devices === chosen;
      plot.append(element("text", {
        x: left + pitch * (i + 0.5), y: bottom + 16, "text-anchor": "middle",
        "font-weight": isChosen ? "bold" : "normal",
      }, step.devices));
    });
    plot.append(element("text", { x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle" }, "devices"));
  }

  function fillTable(steps) {
    const body = document.querySelector("#ideal-table tbody");
    body.replaceChildren(...steps.map(function (step) {
      const row = document.createElement("tr");
      for (const cell of [step.devices, step.step_ms.toFixed(2), step.samples_per_s.toFixed(0),
        step.speed_up.toFixed(2), (100 * step.efficiency).toFixed(1), step.device_s.toFixed(3)]) {
        const made = document.createElement("td");
        made.className = "number";
        made.textContent = cell;
        row.append(made);
      }
      return row;
    }));
  }

  function show() {
    values.hidden_ms = Math.min(values.hidden_ms, values.communication_ms);
    for (const name in outputs) {
      outputs[name].textContent = Number(values[name].toFixed(2));
      document.getElementById("slide-" + name).value = values[name];
    }
    const devices = values.replicas * values.stages;
    const counts = new Set([1, devices]);
    for (let n = 2; n <= 64; n *= 2) if (n % values.stages === 0) counts.add(n);
    const steps = [...counts].sort((a, b) => a - b).map((n) => idealStep(values, n));
    const step = steps.find((one) => one.devices === devices);
    document.getElementById("ideal-result").textContent =
      devices + (devices === 1 ? " device: " : " devices: ") + step.step_ms.toFixed(2) + " ms a step, " +
      step.samples_per_s.toFixed(0) + " samples/s, speed-up " + step.speed_up.toFixed(2) + ", efficiency " +
      (100 * step.efficiency).toFixed(1) + " %, " + step.device_s.toFixed(3) + " device-seconds, busy " +
      (100 * idealBusyShare(values.stages, values.microbatches)).toFixed(1) + " %";
    drawBars(steps, devices);
    fillTable(steps);
  }

  sliders.forEach(addSlider);
  addScaling();
  show();
})();
