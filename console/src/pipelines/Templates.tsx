import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import classes from "./Templates.module.css";

export interface Template { name: string; title: string; description: string; systems: string[]; text: string }
interface Props { chosen: string | null; onChoose: (template: Template) => void }

/** Texts to start from, the simplest first. */
export function Templates({ chosen, onChoose }: Props) {
  const found = useQuery({ queryKey: ["templates"], queryFn: ({ signal }) => api.get<Template[]>("/templates", signal), staleTime: Infinity });
  if (found.isError) return <ErrorNotice error={found.error} onRetry={() => found.refetch()} />;
  if (!found.data) return <Loading lines={2} />;
  return (
    <div className={classes.grid} role="group" aria-label="Templates">
      {found.data.map((each) => (
        <button key={each.name} type="button" className={classes.card} aria-pressed={each.name === chosen} onClick={() => onChoose(each)}>
          <strong>{each.title}</strong>
          <span>{each.description}</span>
          <span className={classes.needs}>{each.systems.length ? `needs ${each.systems.join(", ")}` : "needs no other system"}</span>
        </button>
      ))}
    </div>
  );
}
