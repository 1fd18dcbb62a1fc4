import type { Values } from "../api/metrics";
import type { Summary } from "../api/types";
import classes from "./PipelineList.module.css";
import { PipelineRow } from "./PipelineRow";

interface Props { pipelines: Summary[]; throughput?: Map<string, Values> }

/** Pipelines as a table; on narrow windows each row is a card. */
export function PipelineList({ pipelines, throughput }: Props) {
  return (
    <div className={`surface ${classes.frame}`}>
      <table className={classes.table}>
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
          {pipelines.map((each) => (
            <PipelineRow key={each.id} pipeline={each} throughput={throughput?.get(each.id)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}
