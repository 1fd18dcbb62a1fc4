import { ActionIcon, Menu } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { api } from "../api/client";
import { UserIcon } from "../parts/icons";
import { useMe } from "../session/SessionProvider";

export function UserMenu() {
  const me = useMe();
  const cache = useQueryClient();
  const [, navigate] = useLocation();

  async function logOut(): Promise<void> {
    await api.post("/logout").catch(() => {});
    cache.clear();
    cache.setQueryData(["me"], null);
    navigate("/login");
  }

  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`User ${me.name}`} title={me.name}>
          <UserIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.name} · {me.rights.join(", ")}
        </Menu.Label>
        <Menu.Item onClick={() => navigate("/tokens")}>Tokens</Menu.Item>
        <Menu.Item onClick={() => navigate("/password")}>Password</Menu.Item>
        <Menu.Divider />
        <Menu.Item onClick={logOut}>Log out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
