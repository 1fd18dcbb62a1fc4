import { Stack, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, Disconnected } from "../api/client";
import type { Health, Letter, NodeFacts, Numbers } from "../api/types";
import { count, rate } from "../format/numbers";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { Notice } from "../parts/Notice";
import { StateBadge } from "../parts/StateBadge";
import { Time } from "../parts/Time";
import { usePageTitle } from "../parts/usePageTitle";
import { Payload } from "../pipeline/deadLetters/Payload";
import { Logo } from "../shell/Logo";
import { tone } from "../format/health";
import { InlineCode } from "../parts/InlineCode";

interface SharedPipeline {
  name: string;
  health: Health;
  rows_per_second: number;
  lag: number | null;
  dead_letters: number;
  nodes: Pick<NodeFacts, "name" | "kind" | "type" | "inputs">[];
  numbers: Numbers | null;
}
interface Shared { expires: string; author: string; pipeline?: SharedPipeline; letter?: Letter }

/** The page of a share link: one pipeline or one dead letter, read only, without a login. */
export default function SharedPage() {
  usePageTitle("Shared");
  const [token] = useState(() => new URLSearchParams(window.location.hash.slice(1)).get("token") ?? "");
  const shared = useQuery({ queryKey: ["shared", token], queryFn: ({ signal }) => read(token, signal), retry: false });
  return (
    <main style={{ maxWidth: 960, margin: "0 auto", padding: "20px 16px" }}>
      <Stack gap="md">
        <div style={{ display: "flex", alignItems: "center", gap: 8, fontWeight: 600 }}><Logo /> Penstock</div>
        {shared.isPending && <Loading />}
        {shared.isError && <><h1>Share link</h1><ErrorNotice error={shared.error} /></>}
        {shared.data?.pipeline && <SharedStatus pipeline={shared.data.pipeline} />}
        {shared.data?.letter && <SharedLetter letter={shared.data.letter} />}
        {shared.data && <p className="quiet">Shared by {shared.data.author}, read only. The link expires <Time at={shared.data.expires} />.</p>}
      </Stack>
    </main>
  );
}

function SharedStatus({ pipeline }: { pipeline: SharedPipeline }) {
  const { health } = pipeline;
  return (
    <>
      <div style={{ display: "flex", gap: 12, alignItems: "center", flexWrap: "wrap" }}>
        <h1 style={{ margin: 0, overflowWrap: "anywhere" }}>{pipeline.name}</h1>
        <StateBadge large state={health.state} />
        <Time at={health.since} />
      </div>
      {health.reason && <Notice tone={tone(health.state)} title={health.reason.message}>{health.reason.hint && <InlineCode text={health.reason.hint} />}</Notice>}
      <p className="number" style={{ margin: 0 }}>
        {rate(pipeline.rows_per_second)} rows/s · lag {pipeline.lag === null ? "–" : count(pipeline.lag)} · {count(pipeline.dead_letters)} dead letters
      </p>
      <div className="surface" style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label="Nodes">
        <Table horizontalSpacing="md" miw={480}>
          <Table.Thead>
            <Table.Tr>{["Node", "Kind", "Type", "Reads", "Rows", "Dead letters"].map((each) => <Table.Th key={each}>{each}</Table.Th>)}</Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {pipeline.nodes.map((node) => {
              const numbers = pipeline.numbers?.nodes[node.name];
              return (
                <Table.Tr key={node.name}>
                  <Table.Td fw={600}>{node.name}</Table.Td>
                  <Table.Td>{node.kind}</Table.Td>
                  <Table.Td className="mono">{node.type}</Table.Td>
                  <Table.Td>{node.inputs.join(", ") || "–"}</Table.Td>
                  <Table.Td className="number">{numbers ? count(numbers.rows) : "–"}</Table.Td>
                  <Table.Td className="number">{numbers ? count(numbers.dead_letters) : "–"}</Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </div>
    </>
  );
}

function SharedLetter({ letter }: { letter: Letter }) {
  return (
    <>
      <h1 style={{ margin: 0 }}>Dead letter</h1>
      <Notice tone="bad" title={letter.message}>
        <code className="mono">{letter.code}</code> in {letter.node}, <Time at={letter.time} />
      </Notice>
      <div className="surface" style={{ padding: 12 }}><Payload letter={letter} /></div>
    </>
  );
}

/** Reads what a link shows. No cookie is sent: the rights are those of the link. */
async function read(token: string, signal: AbortSignal): Promise<Shared> {
  const headers = { "Penstock-Share": token };
  const response = await fetch("/api/v1/shared", { headers, signal, credentials: "omit" }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw new Disconnected();
  });
  const content = await response.json().catch(() => ({ errors: [] }));
  if (!response.ok) throw new ApiError(response.status, content.errors ?? []);
  return content as Shared;
}
