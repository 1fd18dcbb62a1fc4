import { useEffect } from "react";
import { isUnhealthy } from "../format/health";
import { usePipelines } from "../live/LiveProvider";

/** Sets the title of the window, with the number of unhealthy pipelines before it. */
export function usePageTitle(title: string): void {
  const unhealthy = (usePipelines() ?? []).filter((each) => isUnhealthy(each.health.state)).length;
  useEffect(() => {
    document.title = `${unhealthy ? `(${unhealthy}) ` : ""}${title} · Penstock`;
  }, [title, unhealthy]);
}
