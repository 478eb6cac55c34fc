/* Browsers let no page read another one from files, so Sphinx finds no text there: the first paragraph stands for it. */
if (location.protocol === "file:") {
  const root = document.documentElement.dataset.content_root;
  window.fetch = async (url) => {
    const page = url.slice(root.length).replace(/[.]html$/, "");
    return { text: async () => `<div role="main"><p>${window.FIRST_PARAGRAPHS[page] ?? ""}</p></div>` };
  };
}
