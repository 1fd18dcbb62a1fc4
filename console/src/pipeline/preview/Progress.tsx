import { Loader } from "@mantine/core";
import classes from "./Panels.module.css";

interface Props { stream: { open: boolean; position: number }; waiting: string }

/** The progress of a request: its place in the queue, or the work that it waits for. */
export function Progress({ stream, waiting }: Props) {
  if (!stream.open) return null;
  return (
    <span className={classes.progress} role="status">
      <Loader size={13} />
      {stream.position ? `Waits: number ${stream.position} of the queue` : waiting}
    </span>
  );
}
