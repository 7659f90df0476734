// A map of all units of a memory, a square each.

/** A small map of all units of a memory: pointer and arrow keys choose one. */
function unitMap(label, choose) {
  const canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": label, click: press, keydown: key, pointermove: point, pointerleave: () => { tip.textContent = idle; } });
  const tip = make("div", { class: "nl-quiet" });
  const node = make("div", { class: "nl-map" }, canvas, tip);
  let columns = 1, side = 10, count = 0, chosen = 0, idle = "", last = null;
  const observer = new ResizeObserver(framed(() => last && node.show(...last))); // columns that get narrower hold fewer
  observer.observe(node);

  function unitAt(event) {
    const box = canvas.getBoundingClientRect();
    const unit = Math.floor((event.clientY - box.top) / side) * columns + Math.floor((event.clientX - box.left) / side);
    return unit >= 0 && unit < count ? unit : null;
  }
  function press(event) { const unit = unitAt(event); if (unit !== null) choose(unit); }
  function point(event) { const unit = unitAt(event); tip.textContent = unit === null ? idle : `unit ${unit}: click to look at it`; }
  function key(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    if (chosen + by >= 0 && chosen + by < count) choose(chosen + by);
  }
  node.end = () => observer.disconnect();
  node.show = (units, unit, shade, dead, description) => {
    last = [units, unit, shade, dead, description];
    idle = description;
    tip.textContent = description;
    [count, chosen] = [units, unit];
    const width = Math.min(420, node.clientWidth || 300);
    columns = Math.min(units, Math.max(10, Math.ceil(Math.sqrt(units * 2.5))));
    side = Math.max(4, Math.min(14, Math.floor(width / columns)));
    const rows = Math.ceil(units / columns), ratio = window.devicePixelRatio || 1;
    if (canvas.width !== columns * side * ratio || canvas.height !== rows * side * ratio) {
      Object.assign(canvas, { width: columns * side * ratio, height: rows * side * ratio });
      Object.assign(canvas.style, { width: `${columns * side}px`, height: `${rows * side}px` });
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, columns * side, rows * side);
    for (let each = 0; each < units; each++) {
      const x = (each % columns) * side, y = Math.floor(each / columns) * side;
      const colour = shade(each);
      pen.fillStyle = colour;
      pen.fillRect(x, y, side - 1, side - 1);
      if (dead(each) && side > 5) {
        pen.fillStyle = ink(colour);
        pen.fillRect(x + side / 2 - 1.5, y + side / 2 - 1.5, 2, 2);
      }
    }
    const x = (unit % columns) * side, y = Math.floor(unit / columns) * side;
    pen.lineWidth = 2;
    pen.strokeStyle = isDark() ? "#ffffff" : "#000000";
    pen.strokeRect(x, y, side - 1, side - 1);
  };
  return node;
}
