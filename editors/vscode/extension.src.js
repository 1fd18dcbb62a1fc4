// Starts `penstock lsp` for YAML files and SQL scripts, and restarts it on request.
const { isAbsolute, join } = require("node:path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

/** Returns the command of the settings. A relative path is one of the first folder. */
function command() {
  const written = vscode.workspace.getConfiguration("penstock").get("command", "penstock");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const isPath = written.includes("/") || written.includes("\\");
  return isPath && !isAbsolute(written) && folder ? join(folder, written) : written;
}

async function start() {
  const selector = ["yaml", "sql"].flatMap((language) =>
    ["file", "untitled"].map((scheme) => ({ scheme, language })));
  client = new LanguageClient(
    "penstock", "Penstock", { command: command(), args: ["lsp"] }, { documentSelector: selector });
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `Penstock: ${command()} lsp does not start. Install it with pip install 'penstock[lsp]', ` +
      `or set penstock.command. ${error}`);
  }
}

exports.activate = async (context) => {
  const restart = async () => {
    await client?.stop();
    await start();
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("penstock.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("penstock")) restart();
    }));
  await start();
};

exports.deactivate = () => client?.stop();
