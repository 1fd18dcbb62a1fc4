/** Styles of components that the first page does not have. */
import "@mantine/core/styles/InlineInput.css";
import "@mantine/core/styles/FloatingIndicator.css";
import "@mantine/core/styles/Checkbox.css";
import "@mantine/core/styles/Combobox.css";
import "@mantine/core/styles/SegmentedControl.css";
import "@mantine/core/styles/Table.css";
