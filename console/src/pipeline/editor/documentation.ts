/** Documentation of the language service, which is Markdown, as elements of text alone. */

const FENCE = /^```/;
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*/g;

/** Returns an element with the paragraphs, lists and code of a documentation. */
export function documentation(text: string): HTMLElement {
  const root = element("div", "cm-documentation");
  let code: HTMLElement | null = null;
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) {
      code = code ? null : root.appendChild(document.createElement("pre"));
    } else if (code) {
      code.append(line + "\n");
    } else if (line === "---") {
      root.append(document.createElement("hr"));
    } else if (line.trim()) {
      root.append(paragraph(line));
    }
  }
  return root;
}

function paragraph(line: string): HTMLElement {
  const found = element("div", line.startsWith("* ") ? "cm-documentation-item" : "");
  let last = 0;
  for (const match of line.matchAll(INLINE)) {
    found.append(line.slice(last, match.index));
    const inner = document.createElement(match[1] ? "code" : "strong");
    inner.textContent = match[1] ?? match[2] ?? "";
    found.append(inner);
    last = match.index + match[0].length;
  }
  found.append(line.slice(last));
  return found;
}

function element(name: string, className: string): HTMLElement {
  const found = document.createElement(name);
  if (className) found.className = className;
  return found;
}
