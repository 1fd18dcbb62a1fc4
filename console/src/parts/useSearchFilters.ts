import { useSearchParams } from "wouter";

/** The filters of a page, kept in its address, and a function that sets or removes one of them. */
export function useSearchFilters() {
  const [search, setSearch] = useSearchParams();

  function set(name: string, value: string | null): void {
    setSearch((before) => {
      const next = new URLSearchParams(before);
      value ? next.set(name, value) : next.delete(name);
      return next;
    }, { replace: true });
  }

  return { search, set, clear: () => setSearch({}) };
}
