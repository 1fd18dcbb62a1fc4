import address from "../theme/penstock.svg";

export function Logo({ size = 24 }: { size?: number }) {
  return <img src={address} width={size} height={size} alt="" />;
}
