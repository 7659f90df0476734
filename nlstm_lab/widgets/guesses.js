// What a network takes for the next character, as bars.

/** The likeliest characters with their probabilities; `next` is marked as what is right. */
function guesses(title, codes, chances, vocabulary, next) {
  const bars = Array.from(codes, (code, k) => {
    const symbol = vocabulary[code];
    return make("div", { class: symbol === next ? "nl-guess nl-right" : "nl-guess" }, make("span", { class: "nl-symbol" }, visible(symbol)),
      make("span", { class: "nl-track" }, make("span", { class: "nl-share", style: `width: ${(100 * chances[k]).toFixed(1)}%` })), make("span", {}, percent(chances[k])));
  });
  return make("div", { class: "nl-next" }, make("h3", {}, title), ...bars);
}
