import { Skeleton, Stack } from "@mantine/core";

/** Grey lines in the place of content that is being loaded. */
export function Loading({ lines = 4, height = 36 }: { lines?: number; height?: number }) {
  return (
    <Stack gap="xs" p="md" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <Skeleton key={index} height={height} radius="sm" />
      ))}
    </Stack>
  );
}
