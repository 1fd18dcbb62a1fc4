import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import { Redirect, useLocation } from "wouter";
import { api, ApiError, onLoggedOut } from "../api/client";
import type { Me, Right } from "../api/types";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";

const SessionContext = createContext<Me | null>(null);

/** Shows its children to a user who is logged in, and the login to others. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const cache = useQueryClient();
  const [path] = useLocation();
  const me = useQuery({ queryKey: ["me"], queryFn: () => api.get<Me>("/me"), retry: false, staleTime: Infinity });
  useEffect(() => onLoggedOut(() => cache.setQueryData(["me"], null)), [cache]);
  if (me.isPending) return <Loading />;
  if (me.data) return <SessionContext value={me.data}>{children}</SessionContext>;
  if (me.data === null || (me.error instanceof ApiError && me.error.status === 401)) {
    return <Redirect to={path === "/" ? "/login" : `/login?to=${encodeURIComponent(path)}`} />;
  }
  return <ErrorNotice error={me.error} onRetry={() => me.refetch()} />;
}

export function useMe(): Me {
  const me = useContext(SessionContext);
  if (!me) throw new Error("no user is logged in");
  return me;
}

/** Whether the user has a right. `admin` includes all rights. */
export function useMay(right: Right): boolean {
  const { rights } = useMe();
  return rights.includes(right) || rights.includes("admin");
}
