import { Button, Group, Stack } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "wouter";
import type { Detail } from "../../api/types";
import { isActive } from "../../format/health";
import { plural } from "../../format/numbers";
import { AskButton } from "../../parts/AskButton";
import { Empty } from "../../parts/Empty";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { Loading } from "../../parts/Loading";
import { useMay } from "../../session/SessionProvider";
import { FailingLine } from "./FailingLine";
import { LetterCounts } from "./LetterCounts";
import { LetterList } from "./LetterList";
import { ReplayResult } from "./ReplayResult";
import { useLetters, useRemove, useReplay } from "./useLetters";

/** The dead letters of a pipeline, by node and code: payloads, replay and removal. */
export default function DeadLettersTab({ pipeline }: { pipeline: Detail }) {
  const [search, setSearch] = useSearchParams();
  const [node, code] = [search.get("node"), search.get("code")];
  const [chosen, setChosen] = useState<ReadonlySet<string>>(() => new Set(search.get("letter") ? [search.get("letter")!] : []));
  const letters = useLetters(pipeline.id, node, code);
  const remove = useRemove(pipeline.id);
  const replay = useReplay(pipeline.id);
  const mayOperate = useMay("operate");
  const mayEdit = useMay("edit");
  if (letters.isError && !letters.data) return <ErrorNotice error={letters.error} onRetry={() => letters.refetch()} />;
  if (!letters.data) return <Loading />;
  const active = isActive(pipeline.health.state);
  const ids = [...chosen];
  const done = { onSuccess: () => setChosen(new Set<string>()) };

  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <LetterCounts counts={letters.data.counts} node={node} code={code} onChoose={(next) => setSearch(next)} />
        <Button size="xs" variant="default" loading={letters.isFetching} onClick={() => letters.refetch()}>
          Reload
        </Button>
      </Group>
      {mayOperate && letters.data.total > 0 && (
        <Group gap="xs">
          <AskButton size="xs" loading={replay.isPending} disabled={active} question={ids.length ? `Replay ${plural(ids.length, "dead letter")}?` : "Replay all dead letters of the pipeline?"} answer="Replay" onConfirm={() => replay.mutate(ids.length ? ids : null, done)}>
            {ids.length ? `Replay ${ids.length}` : "Replay all"}
          </AskButton>
          <AskButton size="xs" loading={remove.isPending} disabled={!ids.length} question={`Remove ${plural(ids.length, "dead letter")} for good?`} answer="Remove" onConfirm={() => remove.mutate(ids, done)}>
            {ids.length ? `Remove ${ids.length}` : "Remove"}
          </AskButton>
          {active && <span className="quiet">A replay requires that the pipeline is stopped.</span>}
        </Group>
      )}
      {replay.isError && <ErrorNotice error={replay.error} />}
      {remove.isError && <ErrorNotice error={remove.error} />}
      {replay.data && <ReplayResult result={replay.data} />}
      <div className="surface">
        {letters.data.letters.length ? (
          <LetterList pipeline={pipeline.id} letters={letters.data.letters} total={letters.data.total} chosen={chosen} open={search.get("letter")} failing={(letter) => <FailingLine id={pipeline.id} letter={letter} text={pipeline.text} place={letters.data.places[letter.node]} mayEdit={mayEdit} />} onChoose={mayOperate ? setChosen : undefined} />
        ) : (
          <Empty title="No dead letters">Records that a pipeline cannot process appear here, with their reason and payload.</Empty>
        )}
      </div>
      {letters.hasNextPage && (
        <Button size="xs" variant="default" loading={letters.isFetchingNextPage} onClick={() => letters.fetchNextPage()}>Earlier dead letters</Button>
      )}
    </Stack>
  );
}
