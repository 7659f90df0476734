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

// What an address may set a trait to, by the trait's kind; below 0 only what is already.
const ACCEPTED = {
  Int: (value, now) => Number.isInteger(value) && (value >= 0 || now < 0),
  Float: (value) => value === null || Number.isFinite(value),
  Bool: (value) => typeof value === "boolean",
  List: (value) => Array.isArray(value) && value.every((each) => typeof each === "string" || Number.isInteger(each)),
};

/** The address says what is looked at, so that a link shows it again; it can name nothing else. */
function addressed(model, looks) {
  const names = Object.keys(looks);
  const said = (name, word) => {
    const now = model.get(name), kind = looks[name];
    if (kind === "Unicode") return word;
    if (Array.isArray(kind)) return kind.includes(word) ? word : now;
    try {
      const value = JSON.parse(word);
      return ACCEPTED[kind](value, now) ? value : now;
    } catch { return now; }
  };
  const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  let own = null; // the address that this page wrote itself says nothing new, and may be older than what is looked at
  const follow = () => location.hash === own || new URLSearchParams(location.hash.slice(1)).forEach((word, name) => { if (names.includes(name)) model.set(name, said(name, word)); });
  const write = settled(() => { own = `#${new URLSearchParams(names.map((name) => [name, written(model.get(name))]))}`; location.replace(own); }, 300);
  follow();
  addEventListener("hashchange", follow);
  names.forEach((name) => model.on(`change:${name}`, write));
  return model;
}

const kept = { ...stored(), _alone: true };
start(addressed(standIn(kept), kept._looks ?? {}), document.getElementById("widget"), render);

// Within another page: how high this one is, so that its frame is not higher.
if (parent !== window) {
  const main = document.getElementById("widget");
  new ResizeObserver(() => parent.postMessage({ height: main.offsetHeight }, "*")).observe(main);
}
