// The frame of a widget is as high as its page, up to the height that site.css allows.
addEventListener("message", ({ source, data }) => {
  for (const frame of document.querySelectorAll("iframe.nl-live"))
    if (frame.contentWindow === source) frame.style.height = `${data.height + 2}px`; // and its two borders
});
