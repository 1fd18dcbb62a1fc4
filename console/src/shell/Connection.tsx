import { duration } from "../format/times";
import { useLive } from "../live/LiveProvider";
import { useNow } from "../live/useNow";
import classes from "./Connection.module.css";

/** Whether values are live; on a lost connection their age. */
export function Connection() {
  const { connected, heard } = useLive();
  const now = useNow();
  const lost = heard > 0 && !connected;
  const text = connected ? "Live" : lost ? `Disconnected · values are ${duration(now - heard)} old` : "Connecting";
  return (
    <span className={classes.connection} data-state={connected ? "live" : lost ? "lost" : "opening"} title={text}>
      <span className={classes.dot} aria-hidden />
      <span className={classes.text}>{text}</span>
      <span role="status" className={classes.announcement}>
        {lost ? "The connection to the server is lost" : ""}
      </span>
    </span>
  );
}
