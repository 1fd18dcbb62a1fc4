import classes from "./Panels.module.css";
import type { CaseResult, Fields } from "./useTests";

/** The differences of a failed test case: rows by node, dead letters, and its error. */
export function CaseDifference({ result }: { result: CaseResult }) {
  const letters = result.dead_letters;
  return (
    <>
      {result.error && <div>{result.error.message} <code className="mono">{result.error.code}</code></div>}
      {result.no_error && <div>Expected an error, found none.</div>}
      {Object.entries(result.nodes).map(([node, { missing, unexpected, different }]) => (
        <table key={node} className={classes.difference}>
          <thead><tr><th scope="col">{node}</th><th scope="col">expected</th><th scope="col">found</th></tr></thead>
          <tbody>
            {different.map((each, index) => (
              <Line key={index} kind="different" expected={pick(each.expected, each.columns)} found={pick(each.got, each.columns)} />
            ))}
            {missing.map((each, index) => <Line key={`m${index}`} kind="missing" expected={each} />)}
            {unexpected.map((each, index) => <Line key={`u${index}`} kind="unexpected" found={each} />)}
          </tbody>
        </table>
      ))}
      {letters.missing.length + letters.unexpected.length > 0 && (
        <table className={classes.difference}>
          <thead><tr><th scope="col">dead letters</th><th scope="col">expected</th><th scope="col">found</th></tr></thead>
          <tbody>
            {letters.missing.map((each, index) => <Line key={`m${index}`} kind="missing" expected={each} />)}
            {letters.unexpected.map((each, index) => <Line key={`u${index}`} kind="unexpected" found={each} />)}
          </tbody>
        </table>
      )}
    </>
  );
}

function Line({ kind, expected, found }: { kind: string; expected?: Fields; found?: Fields }) {
  return (
    <tr>
      <th scope="row">{kind}</th>
      <td data-side="expected">{expected ? text(expected) : "–"}</td>
      <td data-side="found">{found ? text(found) : "–"}</td>
    </tr>
  );
}

const pick = (row: Fields, columns: string[]): Fields => Object.fromEntries(columns.map((each) => [each, row[each]]));
const text = (row: Fields) => Object.entries(row).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ");
