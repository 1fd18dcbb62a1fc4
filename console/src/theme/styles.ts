/** The styles of the whole console. Each component of Mantine loads its own (vite.config.ts). */
import "@mantine/core/styles/baseline.css";
import "@mantine/core/styles/default-css-variables.css";
import "@mantine/core/styles/global.css";
import "@mantine/core/styles/UnstyledButton.css";
import "./tokens.css";
