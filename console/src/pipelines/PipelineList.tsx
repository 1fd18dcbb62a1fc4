import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import type { Values } from "../api/metrics";
import type { Summary } from "../api/types";
import classes from "./PipelineList.module.css";
import { PipelineRow } from "./PipelineRow";

const ROW = 62;
const MANY = 60;

interface Props { pipelines: Summary[]; throughput?: Map<string, Values> }

/** Pipelines as a table; on narrow windows each row is a card. Of many, only rows near the window exist. */
export function PipelineList({ pipelines, throughput }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const virtual = pipelines.length > MANY;
  const rows = useWindowVirtualizer({
    count: virtual ? pipelines.length : 0, estimateSize: () => ROW, overscan: 15,
    scrollMargin: frame.current?.offsetTop ?? 0, getItemKey: (index) => pipelines[index]?.id ?? index,
  });
  const items = rows.getVirtualItems();
  const [first, last] = [items[0], items.at(-1)];
  const above = first ? first.start - rows.options.scrollMargin : 0;
  const below = last ? rows.getTotalSize() - (last.end - rows.options.scrollMargin) : 0;

  return (
    <div className={`surface ${classes.frame}`} ref={frame}>
      <table className={classes.table} aria-rowcount={pipelines.length + 1}>
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Pipeline</th>
            <th scope="col">Reason</th>
            <th scope="col">Since</th>
            <th scope="col" data-number>Rows/s</th>
            <th scope="col" data-number>Lag</th>
            <th scope="col" data-number>Dead letters</th>
          </tr>
        </thead>
        <tbody>
          {above > 0 && <Space height={above} />}
          {virtual
            ? items.map(({ index, key }) => {
                const pipeline = pipelines[index];
                return pipeline && (
                  <PipelineRow
                    key={key} pipeline={pipeline} throughput={throughput?.get(pipeline.id)}
                    index={index} ref={rows.measureElement}
                  />
                );
              })
            : pipelines.map((each) => <PipelineRow key={each.id} pipeline={each} throughput={throughput?.get(each.id)} />)}
          {below > 0 && <Space height={below} />}
        </tbody>
      </table>
    </div>
  );
}

function Space({ height }: { height: number }) {
  return (
    <tr aria-hidden className={classes.space}>
      <td colSpan={7} style={{ height }} />
    </tr>
  );
}
