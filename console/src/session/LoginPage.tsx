import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client";
import type { Me } from "../api/types";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Gate } from "./Gate";

/** The login by password, or by the code in the fragment of the address. */
export function LoginPage() {
  const cache = useQueryClient();
  const [, navigate] = useLocation();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const code = useRef(takeCode());

  async function logIn(path: string, body: unknown, next: string): Promise<void> {
    setBusy(true);
    setError(null);
    try {
      const me = await api.post<Me>(path, body);
      cache.clear();
      cache.setQueryData(["me"], me);
      navigate(next, { replace: true });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  }

  useEffect(() => {
    document.title = "Log in · Penstock";
    if (!code.current) return;
    const given = code.current;
    code.current = null;
    void logIn("/login/code", { code: given }, "/password?first");
  }, []);

  function submit(event: FormEvent): void {
    event.preventDefault();
    void logIn("/login", { name, password }, destination());
  }

  return (
    <Gate title="Log in">
      <form onSubmit={submit}>
        <Stack gap="md">
          {Boolean(error) && <ErrorNotice error={error} />}
          <TextInput label="Name" autoComplete="username" required autoFocus value={name} onChange={(event) => setName(event.currentTarget.value)} />
          <PasswordInput label="Password" autoComplete="current-password" required value={password} onChange={(event) => setPassword(event.currentTarget.value)} />
          <Button type="submit" loading={busy} fullWidth>
            Log in
          </Button>
        </Stack>
      </form>
      <p className="quiet" style={{ fontSize: 12.5, marginBottom: 0 }}>
        The first login uses the address with a code that the server prints at its first start.
      </p>
    </Gate>
  );
}

/** Returns the code of the address, and removes it from the address and the history. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
  if (code) window.history.replaceState(null, "", window.location.pathname);
  return code;
}

/** Returns the page to show after the login: a path of this server only. */
function destination(): string {
  const to = new URLSearchParams(window.location.search).get("to") ?? "/";
  return /^\/(?![/\\])/.test(to) ? to : "/";
}
