import { Stack, Table } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api } from "../api/client";
import type { UserFacts } from "../api/types";
import { AskButton } from "../parts/AskButton";
import { ErrorNotice } from "../parts/ErrorNotice";
import classes from "../parts/CardTable.module.css";
import { Loading } from "../parts/Loading";
import { Time } from "../parts/Time";
import { usePageTitle } from "../parts/usePageTitle";
import { useMe } from "../session/SessionProvider";
import { NewUser } from "./NewUser";
import { UserRights } from "./UserRights";

/** The users of the server and their rights. */
export default function UsersPage() {
  usePageTitle("Users");
  const me = useMe();
  const cache = useQueryClient();
  const users = useQuery({ queryKey: ["users"], queryFn: () => api.get<UserFacts[]>("/users") });
  const remove = useMutation({
    mutationFn: (name: string) => api.delete(`/users/${encodeURIComponent(name)}`),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["users"] }),
  });
  if (users.isError) return <ErrorNotice error={users.error} onRetry={() => users.refetch()} />;
  return (
    <Stack gap="md">
      <h1>Users</h1>
      {remove.isError && <ErrorNotice error={remove.error} />}
      <div className="surface" style={{ overflow: "clip" }}>
        {!users.data && <Loading />}
        {users.data && (
          <Table className={classes.table} verticalSpacing="sm" horizontalSpacing="md">
            <Table.Thead>
              <Table.Tr>{["Name", "Rights", "Created", ""].map((each) => <Table.Th key={each}>{each || <span className="quiet">Actions</span>}</Table.Th>)}</Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {users.data.map((user) => (
                <Table.Tr key={user.name}>
                  <Table.Td fw={600} className="long" maw={{ md: 360 }}>{user.name}{user.name === me.name && <span className="quiet"> (you)</span>}{!user.has_password && <div className="quiet">no password yet</div>}</Table.Td>
                  <Table.Td><UserRights user={user} /></Table.Td>
                  <Table.Td><Time at={user.time} /></Table.Td>
                  <Table.Td data-actions ta={{ base: "left", md: "right" }}>
                    {user.name !== me.name && <AskButton size="xs" question={`Delete ${user.name}?`} answer="Delete" onConfirm={() => remove.mutate(user.name)}>Delete</AskButton>}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
      </div>
      <NewUser />
    </Stack>
  );
}
