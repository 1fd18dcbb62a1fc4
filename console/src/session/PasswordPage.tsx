import { Anchor, Button, PasswordInput, Stack } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { api } from "../api/client";
import type { Me } from "../api/types";
import { ErrorNotice } from "../parts/ErrorNotice";
import { usePageTitle } from "../parts/usePageTitle";
import { Gate } from "./Gate";
import { useMe } from "./SessionProvider";

/** The page that sets the password of the user, and logs in again with it. */
export function PasswordPage() {
  usePageTitle("Password");
  const me = useMe();
  const cache = useQueryClient();
  const [, navigate] = useLocation();
  const first = useSearch().includes("first");
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const different = again !== "" && again !== password;

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setBusy(true);
    try {
      await api.put("/me/password", { password });
      cache.setQueryData(["me"], await api.post<Me>("/login", { name: me.name, password }));
      navigate("/", { replace: true });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  }

  return (
    <Gate title={first ? `Welcome, ${me.name}: set a password` : "Set a password"}>
      <form onSubmit={submit}>
        <Stack gap="md">
          {Boolean(error) && <ErrorNotice error={error} />}
          <input type="text" name="username" autoComplete="username" value={me.name} readOnly hidden />
          <PasswordInput label="New password" description="At least 12 characters. Other sessions end." autoComplete="new-password" required autoFocus value={password} onChange={(event) => setPassword(event.currentTarget.value)} />
          <PasswordInput label="Repeat the password" autoComplete="new-password" required value={again} error={different && "the passwords differ"} onChange={(event) => setAgain(event.currentTarget.value)} />
          <Button type="submit" loading={busy} disabled={!password || again !== password}>
            Set the password
          </Button>
          <Anchor component={Link} href="/" ta="center" fz="sm">
            {first ? "Later" : "Back"}
          </Anchor>
        </Stack>
      </form>
    </Gate>
  );
}
