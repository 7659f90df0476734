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

/** The address says what is looked at, so that a link shows it again; it can name nothing else. */
function addressed(model, looks) {
  const names = Object.keys(looks);
  const said = (name, word) => {
    const now = model.get(name);
    if (typeof now === "number") return /^\d+$/.test(word) || (word === "-1" && now < 0) ? Number(word) : now;
    if (typeof now === "boolean") return word === "true";
    return looks[name] === null || looks[name].includes(word) ? word : now;
  };
  const follow = () => new URLSearchParams(location.hash.slice(1)).forEach((word, name) => { if (names.includes(name)) model.set(name, said(name, word)); });
  const write = settled(() => location.replace(`#${new URLSearchParams(names.map((name) => [name, model.get(name)]))}`), 300);
  follow();
  addEventListener("hashchange", follow);
  names.forEach((name) => model.on(`change:${name}`, write));
  return model;
}

const kept = { ...stored(), _alone: true };
const looks = Object.entries(kept._looks).filter(([name]) => kept.networks || !["run", "text"].includes(name)); // which need a network
start(addressed(standIn(kept), Object.fromEntries(looks)), document.getElementById("widget"), render);
