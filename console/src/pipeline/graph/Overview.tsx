import { MiniMap, type ReactFlowState, useStore } from "@xyflow/react";

/** A small picture of a whole graph, while some of its nodes are outside the canvas. */
export function Overview({ problems }: { problems: ReadonlySet<string> }) {
  if (!useStore(isCut)) return null;
  return (
    <MiniMap
      pannable zoomable ariaLabel="Overview" bgColor="var(--surface)" style={{ width: 150, height: 96 }}
      nodeColor={(each) => problems.has(each.id) ? "var(--bad)" : "var(--line-strong)"}
      maskColor="color-mix(in srgb, var(--page) 70%, transparent)"
    />
  );
}

function isCut({ nodes, transform: [left, top, zoom], width, height }: ReactFlowState): boolean {
  return nodes.some(({ position: { x, y }, width: wide = 0, height: high = 0 }) => {
    const [from, above] = [x * zoom + left, y * zoom + top];
    return from < 0 || above < 0 || from + wide * zoom > width || above + high * zoom > height;
  });
}
