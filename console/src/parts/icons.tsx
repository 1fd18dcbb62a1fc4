/** Icons of 16 px, drawn in the colour of their text. */
import type { ReactNode } from "react";

const icon = (path: ReactNode) =>
  function Icon() {
    return (
      <svg viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" strokeWidth="1.600" strokeLinecap="round" strokeLinejoin="round" aria-hidden>
        {path}
      </svg>
    );
  };

export const SearchIcon = icon(<><circle cx="7" cy="7" r="4.500" /><path d="m10.500 10.500 3.500 3.500" /></>);
export const SunIcon = icon(<><circle cx="8" cy="8" r="3" /><path d="M8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1" /></>);
export const MoonIcon = icon(<path d="M13.500 9.500A6 6 0 0 1 6.500 2.500a5.800 5.800 0 1 0 7 7Z" />);
export const UserIcon = icon(<><circle cx="8" cy="5.500" r="2.700" /><path d="M2.800 14c.6-2.700 2.600-4 5.200-4s4.600 1.300 5.200 4" /></>);
export const PlayIcon = icon(<path d="M4.500 2.800v10.400L13 8Z" fill="currentColor" />);
export const StopIcon = icon(<rect x="3.500" y="3.500" width="9" height="9" rx="1" fill="currentColor" />);
export const RestartIcon = icon(<path d="M13 8a5 5 0 1 1-1.600-3.700M13 2v3h-3" />);
export const BackIcon = icon(<path d="m9.500 3-5 5 5 5" />);
export const PlusIcon = icon(<path d="M8 3v10M3 8h10" />);
