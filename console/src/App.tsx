import { lazy, Suspense } from "react";
import { Route, Switch } from "wouter";
import { LiveProvider } from "./live/LiveProvider";
import { Empty } from "./parts/Empty";
import { Loading } from "./parts/Loading";
import { PipelinesPage } from "./pipelines/PipelinesPage";
import { LoginPage } from "./session/LoginPage";
import { PasswordPage } from "./session/PasswordPage";
import { SessionProvider } from "./session/SessionProvider";
import { Shell } from "./shell/Shell";

const PipelinePage = lazy(() => import("./pipeline/PipelinePage"));
const NewPipelinePage = lazy(() => import("./pipelines/NewPipelinePage"));
const UsersPage = lazy(() => import("./admin/UsersPage"));
const TokensPage = lazy(() => import("./admin/TokensPage"));
const ConnectionsPage = lazy(() => import("./connections/ConnectionsPage"));
const FunctionsPage = lazy(() => import("./functions/FunctionsPage"));
const AlertsPage = lazy(() => import("./alerts/AlertsPage"));
const SharedPage = lazy(() => import("./shared/SharedPage"));
const AuditPage = lazy(() => import("./admin/AuditPage"));

/** All pages by their addresses. */
export function App() {
  return (
    <Switch>
      <Route path="/login" component={LoginPage} />
      <Route path="/shared">
        <Suspense fallback={<Loading />}>
          <SharedPage />
        </Suspense>
      </Route>
      <Route>
        <SessionProvider>
          <Switch>
            {/* A new password begins another session: the stream of the former one would end. */}
            <Route path="/password" component={PasswordPage} />
            <Route>
              <LiveProvider>
                <Shell>
                  <Pages />
                </Shell>
              </LiveProvider>
            </Route>
          </Switch>
        </SessionProvider>
      </Route>
    </Switch>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/" component={PipelinesPage} />
      <Route path="/new" component={NewPipelinePage} />
      <Route path="/pipelines/:id/:tab?">
        {({ id, tab }) => <PipelinePage key={id} id={id} tab={tab ?? "graph"} />}
      </Route>
      <Route path="/connections" component={ConnectionsPage} />
      <Route path="/functions" component={FunctionsPage} />
      <Route path="/alerts" component={AlertsPage} />
      <Route path="/users" component={UsersPage} />
      <Route path="/tokens" component={TokensPage} />
      <Route path="/audit" component={AuditPage} />
      <Route>
        <Empty title="There is no such page">The address may be that of a later version.</Empty>
      </Route>
    </Switch>
  );
}
