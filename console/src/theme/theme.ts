import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

const water: MantineColorsTuple = [
  "#e6f7f9", "#cfebef", "#a0d5de", "#6dbfcc", "#43acbd", "#2aa0b3",
  "#14889b", "#0b7285", "#08606f", "#034c59",
];
const ink: MantineColorsTuple = [
  "#d5dbe1", "#b4bdc7", "#97a3af", "#7f8b97", "#46515d", "#333d48",
  "#232c35", "#192027", "#12181e", "#0c1116",
];

export const theme = createTheme({
  primaryColor: "water",
  primaryShade: { light: 7, dark: 7 },
  colors: { water, dark: ink },
  defaultRadius: "sm",
  fontFamily:
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, "SF Mono", "Cascadia Mono", "Roboto Mono", "Liberation Mono", monospace',
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  headings: { fontWeight: "600", sizes: { h1: { fontSize: "22px" }, h2: { fontSize: "16px" } } },
  cursorType: "pointer",
  autoContrast: true,
  components: { SegmentedControl: { defaultProps: { transitionDuration: 0 } } },
});

/** Returns the colours of text that is less important, with a contrast of at least 4.5. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: { "--mantine-color-dimmed": "#57626d", "--mantine-color-placeholder": "#6a7580" },
  dark: { "--mantine-color-dimmed": "#97a3af", "--mantine-color-placeholder": "#84909c" },
});
