import { Table } from "@mantine/core";
import { Link } from "wouter";
import type { Run, State } from "../../api/types";
import { duration } from "../../format/times";
import { useNow } from "../../live/useNow";
import { StateBadge } from "../../parts/StateBadge";
import { Time } from "../../parts/Time";

const STATES: Record<string, State> = { failed: "failed", killed: "failed", stopped: "stopped", complete: "complete" };

/** One run: its ending, times, errors, version and author. */
export function RunRow({ id, run }: { id: string; run: Run }) {
  const now = useNow();
  const end = run.ended ? new Date(run.ended).getTime() : now;
  const errors = Object.entries(run.errors).flatMap(([part, all]) => all.map((each) => ({ part, ...each })));
  return (
    <Table.Tr style={{ verticalAlign: "top" }}>
      <Table.Td>
        {run.ending ? <StateBadge state={STATES[run.ending] ?? "unknown"} label={run.ending} /> : <StateBadge state="running" />}
      </Table.Td>
      <Table.Td><Time at={run.began} /></Table.Td>
      <Table.Td className="number">{duration(end - new Date(run.began).getTime())}</Table.Td>
      <Table.Td style={{ overflowWrap: "anywhere", minWidth: 200 }}>
        {errors.length === 0 && <span className="quiet">–</span>}
        {errors.map((each, index) => (
          <div key={index}>
            <code className="mono">{each.code}</code> {each.message}
            {each.part !== "run" && <span className="quiet"> in {each.part}</span>}
          </div>
        ))}
      </Table.Td>
      <Table.Td className="number">{run.pipeline_version ? `v${run.pipeline_version}` : "–"}</Table.Td>
      <Table.Td>{run.author ?? "–"}</Table.Td>
      <Table.Td><Link href={`/pipelines/${id}/logs?run=${run.id}`} aria-label={`Log of the run of ${run.began}`}>Log</Link></Table.Td>
    </Table.Tr>
  );
}
