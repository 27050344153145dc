/* TensorBoard's entry: it imports this module into the tab's frame, and calls render(), which
 * brings the frame what view.html is made of.
 */

export async function render() {
  const answer = await fetch(new URL("view", import.meta.url));
  const view = new DOMParser().parseFromString(await answer.text(), "text/html");
  const address = (element, name) => new URL(element.getAttribute(name), import.meta.url);
  document.documentElement.lang = "en";
  await Promise.all([...view.querySelectorAll("link[rel=stylesheet]")].map((link) => {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = address(link, "href");
    document.head.append(style);
    return new Promise((done) => style.addEventListener("load", done));
  }));
  for (const { attributes } of view.querySelectorAll("script")) {
    const script = document.createElement("script");
    script.src = new URL(attributes.src.value, import.meta.url);
    script.async = false; // in this order
    document.head.append(script);
  }
}
