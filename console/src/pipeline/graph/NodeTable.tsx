import { Table } from "@mantine/core";
import type { Detail } from "../../api/types";
import { count, rate } from "../../format/numbers";
import classes from "./GraphTab.module.css";

interface Props { detail: Detail; selected: string | null; onSelect: (name: string) => void }

/** The nodes of a pipeline as a table: the equivalent of the graph. */
export function NodeTable({ detail, selected, onSelect }: Props) {
  return (
    <Table verticalSpacing="xs" horizontalSpacing="sm" highlightOnHover>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Node</Table.Th>
          <Table.Th visibleFrom="sm">Input</Table.Th>
          <Table.Th ta="right">Rows/s</Table.Th>
          <Table.Th ta="right" visibleFrom="sm">Rows</Table.Th>
          <Table.Th ta="right">Lag</Table.Th>
          <Table.Th ta="right">Dead letters</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {detail.nodes.map((node) => {
          const numbers = detail.numbers?.nodes[node.name];
          const flows = numbers && node.kind !== "transform";
          return (
            <Table.Tr key={node.name} aria-selected={node.name === selected}>
              <Table.Td><button type="button" className={classes.pick} onClick={() => onSelect(node.name)}>{node.name}</button><div className="quiet">{node.kind} · {node.type}</div></Table.Td>
              <Table.Td className="quiet" visibleFrom="sm">{node.inputs.join(", ") || "–"}</Table.Td>
              <Table.Td ta="right" className="number">{flows ? rate(numbers.rows_per_second) : "–"}</Table.Td>
              <Table.Td ta="right" className="number" visibleFrom="sm">{flows ? count(numbers.rows) : "–"}</Table.Td>
              <Table.Td ta="right" className="number">{numbers?.lag != null ? `${count(numbers.lag)} ${numbers.lag_unit}` : "–"}</Table.Td>
              <Table.Td ta="right" className="number">{numbers ? count(numbers.dead_letters) : "–"}</Table.Td>
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}
