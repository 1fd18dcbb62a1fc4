import { Button, Group, Stack } from "@mantine/core";
import { type Action, useAction } from "../api/queries";
import type { Problem, Summary } from "../api/types";
import { isActive, isStopping } from "../format/health";
import { AskButton } from "../parts/AskButton";
import { ErrorNotice } from "../parts/ErrorNotice";
import { PlayIcon, RestartIcon, StopIcon } from "../parts/icons";
import { useMay } from "../session/SessionProvider";
import { ShareButton } from "../shared/ShareButton";
import { DeletePipeline } from "./DeletePipeline";

interface Props { pipeline: Summary; errors: Problem[] }

/** Start, stop, restart and delete. A stop asks once; a start does not. A file with errors cannot start. */
export function Actions({ pipeline, errors }: Props) {
  const action = useAction(pipeline.id);
  const mayOperate = useMay("operate");
  const mayEdit = useMay("edit");
  const run = (each: Action) => () => action.mutate(each);
  const busy = (each: Action) => action.isPending && action.variables === each;
  const active = isActive(pipeline.health.state);
  const stopping = isStopping(pipeline);
  const invalid = errors.length > 0;
  const reason = invalid ? "invalid-file" : undefined;
  return (
    <Stack gap="xs" align="flex-end">
      <Group gap="xs">
        <ShareButton id={pipeline.id} />
        {mayOperate && active && !stopping && (
          <>
            <AskButton leftSection={<RestartIcon />} loading={busy("restart")} disabled={invalid} aria-describedby={reason} question="Restart after the current batch?" answer="Restart" onConfirm={run("restart")}>
              Restart
            </AskButton>
            <AskButton leftSection={<StopIcon />} loading={busy("stop")} question="Stop after the current batch?" answer="Stop" onConfirm={run("stop")}>
              Stop
            </AskButton>
          </>
        )}
        {!active && mayEdit && pipeline.deletable && <DeletePipeline pipeline={pipeline} />}
        {!active && mayOperate && (
          <Button leftSection={<PlayIcon />} loading={busy("start")} disabled={invalid} aria-describedby={reason} onClick={run("start")}>
            Start
          </Button>
        )}
      </Group>
      {mayOperate && invalid && <span id={reason} className="quiet">The file has errors. Correct them before {active ? "a restart" : "the start"}.</span>}
      {action.isError && <ErrorNotice error={action.error} />}
    </Stack>
  );
}
