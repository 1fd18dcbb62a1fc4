import { Button, type ButtonProps, Group } from "@mantine/core";
import { type ReactNode, useState } from "react";

interface Props extends ButtonProps {
  children: ReactNode;
  question: ReactNode;
  answer: string;
  onConfirm: () => void;
}

/** A button that asks once, in its place. Escape and Cancel leave everything as it is. */
export function AskButton({ children, question, answer, onConfirm, ...button }: Props) {
  const [asking, setAsking] = useState(false);
  if (!asking) {
    return (
      <Button variant="default" {...button} onClick={() => setAsking(true)}>
        {children}
      </Button>
    );
  }
  const confirm = () => {
    setAsking(false);
    onConfirm();
  };
  return (
    <Group gap={8} role="group" aria-label={answer} onKeyDown={(event) => event.key === "Escape" && setAsking(false)}>
      <span style={{ fontSize: 13 }}>{question}</span>
      <Button size={button.size} color="red.8" onClick={confirm} data-autofocus autoFocus>
        {answer}
      </Button>
      <Button size={button.size} variant="subtle" onClick={() => setAsking(false)}>
        Cancel
      </Button>
    </Group>
  );
}
