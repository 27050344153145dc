/* The view outside TensorBoard's frame, or in it: the whole window. */
"use strict";

Colours.follow();
document.body.classList.add("explorer-page");
Explorer.create(document.body, Sources.server(new URL(".", document.currentScript.src)));
