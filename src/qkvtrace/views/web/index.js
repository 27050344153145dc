/* TensorBoard's entry: it imports this module into the tab's frame, and calls render(). */

const SCRIPTS = ["plotly.min", "colours", "drawing", "labels", "key", "matrix", "grid", "curves",
  "cloud", "state", "choices", "sources", "story", "side", "explorer", "view"];

export async function render() {
  document.documentElement.lang = "en";
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("explorer.css", import.meta.url);
  const styled = new Promise((done) => style.addEventListener("load", done));
  document.head.append(style);
  await styled;
  for (const name of SCRIPTS) {
    const script = document.createElement("script");
    script.src = new URL(`${name}.js`, import.meta.url);
    script.async = false; // in this order
    document.head.append(script);
  }
}
