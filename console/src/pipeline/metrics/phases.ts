/** The phases of a batch, in their order, with the colors of charts. */
export const PHASES = [
  ["offsets", "find new rows"], ["log", "log offsets"], ["planning", "plan"],
  ["processing", "process and write"], ["commit", "commit"], ["other", "other"],
] as const;
