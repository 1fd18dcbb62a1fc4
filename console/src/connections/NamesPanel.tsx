import { Button, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, query } from "../api/client";
import { Empty } from "../parts/Empty";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { useMay } from "../session/SessionProvider";
import { type Connection, connectionPath } from "./connections";
import { SamplePanel } from "./SamplePanel";

const SAMPLED = ["topic", "stream", "bucket"];

interface Page { topics: string[]; more: boolean }

/** The names that exist for options of a connection, such as its topics. */
export function NamesPanel({ connection }: { connection: Connection }) {
  const { lists, name } = connection;
  const [option, setOption] = useState(lists[0] ?? "");
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const canSample = useMay("data") && SAMPLED.includes(option);
  const [wanted] = useDebouncedValue(text, 300);
  const found = useInfiniteQuery({
    queryKey: ["names", name, option, wanted],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page>(`${connectionPath(name)}/topics${query({ option, text: wanted, after: pageParam })}`, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.more ? page.topics[page.topics.length - 1] : undefined),
    retry: false,
  });
  const names = found.data?.pages.flatMap((page) => page.topics);
  return (
    <Stack gap="sm">
      {lists.length > 1 && <SegmentedControl aria-label="Option" size="xs" style={{ alignSelf: "flex-start" }} value={option} onChange={(value) => { setOption(value); setChosen(null); }} data={lists} />}
      {found.isError && <ErrorNotice error={found.error} onRetry={() => found.refetch()} />}
      <TextInput label="Search" value={text} onChange={(event) => setText(event.currentTarget.value)} maw={360} />
      {found.isPending && <Loading />}
      {names?.length === 0 && <Empty title={`No ${option} is found`} />}
      {names && names.length > 0 && (
        <>
          <span className="quiet">Values of the option <code className="mono">{option}</code>. The editor completes them.</span>
          <ul className="mono long" style={{ margin: 0, paddingLeft: 18 }} aria-label={`Names for ${option}`}>
            {names.map((each) => (
              <li key={each}>
                {each}{" "}
                {canSample && <Button size="compact-xs" variant="subtle" aria-label={`Sample ${each}`} aria-expanded={chosen === each} onClick={() => setChosen(chosen === each ? null : each)}>Sample</Button>}
                {canSample && chosen === each && <SamplePanel connection={name} option={option} topic={each} />}
              </li>
            ))}
          </ul>
        </>
      )}
      {found.hasNextPage && <Button size="xs" variant="default" style={{ alignSelf: "flex-start" }} loading={found.isFetchingNextPage} onClick={() => found.fetchNextPage()}>More</Button>}
    </Stack>
  );
}
