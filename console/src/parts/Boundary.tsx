import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { Notice } from "./Notice";

interface Props { place: string; children: ReactNode }
interface State { error: unknown; place: string }

/** Shows an error of a page in its place, until the user opens another page. */
export class Boundary extends Component<Props, State> {
  override state: State = { error: null, place: this.props.place };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error };
  }

  static getDerivedStateFromProps({ place }: Props, state: State): Partial<State> | null {
    return place === state.place ? null : { error: null, place };
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children;
    return (
      <Notice
        tone="bad" role="alert" title="The page has an error"
        actions={<Button size="xs" variant="default" onClick={() => window.location.reload()}>Load again</Button>}
      >
        The server may have a new version. {String(this.state.error)}
      </Notice>
    );
  }
}
