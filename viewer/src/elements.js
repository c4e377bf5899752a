// Small helpers that make elements. Text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";

export const ICONS = {
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M7 5.5h3.5v13H7zM13.5 5.5H17v13h-3.5z",
  back: "M17 6v12l-8-6zM6.5 6H9v12H6.5z",
  forward: "M7 6v12l8-6zM15 6h2.5v12H15z",
  repeat: "M7 8h9l-1.6-1.6L15.8 5 20 9l-4.2 4-1.4-1.4L16 10H7a3 3 0 0 0 0 6h2v2H7A5 5 0 0 1 7 8z",
  eye: "M12 5.5c5 0 8.6 4.6 9.5 6.5-.9 1.900-4.500 6.500-9.500 6.500S3.400 13.900 2.500 12C3.400 10.100 7 5.500 12 5.500zm0 3a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7z",
  chart: "M4 4h2v14h14v2H4zM8 15l3.500-5 3 3L19 6.500l1.500 1.200-5.700 8.300-3-3L9.700 16z",
  fit: "M4 9V4h5v2H6v3zM15 4h5v5h-2V6h-3zM4 15h2v3h3v2H4zM18 15h2v5h-5v-2h3z",
  camera: "M9 5l-1.500 2H4v12h16V7h-3.500L15 5zm3 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8z",
  moon: "M14.500 3.500A8.500 8.500 0 1 0 20.500 14 7 7 0 0 1 14.500 3.500z",
  sliders: "M4 7h9v2H4zM17 7h3v2h-3zM14 5h2v6h-2zM4 15h3v2H4zM11 15h9v2h-9zM8 13h2v6H8z",
  help: "M11 16h2v2h-2zM12 5.500a4 4 0 0 1 4 4c0 2.500-3 2.800-3 5h-2c0-3.300 3-3.300 3-5a2 2 0 0 0-4 0H8a4 4 0 0 1 4-4z",
  close: "M6.400 5L12 10.600 17.600 5 19 6.400 13.400 12 19 17.600 17.600 19 12 13.400 6.400 19 5 17.600 10.600 12 5 6.400z",
  plus: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6z",
};

export function make(tag, className = "", text = null, parent = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  path.setAttribute("fill-rule", "evenodd");
  svg.append(path);
  return svg;
}

export function button(iconName, label, onClick, parent, className = "") {
  const element = make("button", `icon ${className}`, null, parent);
  element.type = "button";
  element.title = label;
  element.setAttribute("aria-label", label);
  element.append(icon(iconName));
  element.addEventListener("click", onClick);
  return element;
}

export function setIcon(element, name) {
  element.replaceChildren(icon(name));
}

export function number(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return Number(value.toPrecision(digits)).toExponential();
  return String(Number(value.toPrecision(digits)));
}
