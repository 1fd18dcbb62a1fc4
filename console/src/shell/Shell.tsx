import { Suspense, type ReactNode, useEffect, useRef } from "react";
import { Link, useLocation, useRoute } from "wouter";
import { useLive } from "../live/LiveProvider";
import { Boundary } from "../parts/Boundary";
import { Loading } from "../parts/Loading";
import { useMay } from "../session/SessionProvider";
import { Connection } from "./Connection";
import { Logo } from "./Logo";
import { SchemeButton } from "./SchemeButton";
import classes from "./Shell.module.css";
import { UserMenu } from "./UserMenu";

/** The frame of all pages: header with navigation, connection and user. */
export function Shell({ children }: { children: ReactNode }) {
  const { connected, heard } = useLive();
  const admin = useMay("admin");
  const edit = useMay("edit");
  const [path] = useLocation();
  const links = useRef<HTMLElement>(null);
  useEffect(() => {
    links.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [path]);
  return (
    <div className={heard && !connected ? "stale" : undefined}>
      <a href="#content" className={classes.skip}>
        Skip to the content
      </a>
      <header className={classes.header}>
        <Link href="/" className={classes.brand} aria-label="Penstock, all pipelines">
          <Logo />
          <span>Penstock</span>
        </Link>
        <nav ref={links} className={classes.nav} aria-label="Main">
          <NavigationLink to="/" pattern="/pipelines/*?">
            Pipelines
          </NavigationLink>
          {edit && <NavigationLink to="/connections">Connections</NavigationLink>}
          <NavigationLink to="/functions">Functions</NavigationLink>
          <NavigationLink to="/alerts">Alerts</NavigationLink>
          {admin && <NavigationLink to="/users">Users</NavigationLink>}
          {admin && <NavigationLink to="/audit">Audit</NavigationLink>}
          <a href="/docs/" className={classes.link}>
            Docs
          </a>
        </nav>
        <Connection />
        <SchemeButton />
        <UserMenu />
      </header>
      <main id="content" className={classes.content} tabIndex={-1}>
        <Boundary place={path}>
          <Suspense fallback={<Loading />}>{children}</Suspense>
        </Boundary>
      </main>
    </div>
  );
}

function NavigationLink({ to, pattern, children }: { to: string; pattern?: string; children: ReactNode }) {
  const [exact] = useRoute(to);
  const [below] = useRoute(pattern ?? to);
  return (
    <Link href={to} className={classes.link} aria-current={exact || below ? "page" : undefined}>
      {children}
    </Link>
  );
}
