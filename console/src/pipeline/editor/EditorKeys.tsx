import classes from "./Editor.module.css";

const modifier = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";

/** The keys of the editor. */
export function EditorKeys() {
  return (
    <p id="editor-keys" className={classes.keys}>
      <kbd>F8</kbd> next problem · <kbd>{modifier} .</kbd> apply the fix · <kbd>Ctrl Space</kbd> complete · <kbd>{modifier} F</kbd> search
    </p>
  );
}
