document.querySelector("input").addEventListener("input", event => {
  const wanted = event.target.value.toLowerCase();
  for (const card of document.querySelectorAll("article"))
    card.hidden = !card.textContent.toLowerCase().includes(wanted);
});
