// A page without Python: the state that was saved stands in for the kernel's.

function stored() {
  return JSON.parse(document.getElementById("state").textContent, (_, value) =>
    value !== null && typeof value === "object" && typeof value.base64 === "string" && Object.keys(value).length === 1
      ? new DataView(Uint8Array.from(atob(value.base64), (letter) => letter.charCodeAt(0)).buffer) : value);
}

function standIn(state) {
  const listeners = new Map();
  return {
    get: (name) => state[name],
    set(name, value) {
      if (state[name] === value) return;
      state[name] = value;
      (listeners.get(`change:${name}`) ?? []).forEach((f) => f());
    },
    on: (event, f) => { listeners.set(event, [...(listeners.get(event) ?? []), f]); },
    off: (event, f) => { listeners.set(event, (listeners.get(event) ?? []).filter((each) => each !== f)); },
    save_changes() {},
    send() {},
  };
}

start(standIn({ ...stored(), _alone: true }), document.getElementById("widget"), render);
