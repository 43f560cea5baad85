// Package hosts tests Drawbridge inside programs that people use it from: Codex, Gemini CLI and opencode, as npm has
// them. Each runs headless, gets Drawbridge by "drawbridge connect", shows it in its own list of MCP servers, and
// completes a whole turn with a model that asks for a tool of a server behind it. The model is npm's aimock, which is
// held to the real APIs by its authors, so that a host's request and our reading of it cannot be wrong together.
//
// The tests have the build tag "hosts" and need what "make hosts" installs: 900 MB, kept outside the repository and
// used by every working copy. They are no part of "make ci". They reach nothing but loopback, which a proxy that
// refuses everything watches over, read no home but their own, and leave no process behind.
//
// What a host needs, beside its entry for Drawbridge, to work without its maker's servers:
//
//   - Codex: a model_providers table with wire_api "responses"; analytics, the update check, and the features plugins, apps
//     and remote_plugin off, since they ask chatgpt.com and github.com. It knows the tools of a server as a namespace, which
//     aimock leaves out of its answers: model adds it. It hands an MCP server HOME, PATH, USER, SHELL, TERM, TMPDIR, TZ and
//     the language only, and above all no XDG_* directory. It lists a server's tools once and ignores list_changed.
//   - Gemini CLI: GOOGLE_GEMINI_BASE_URL and some GEMINI_API_KEY; security.auth.selectedType; folder trust off, or every
//     server is shown as disabled; updates and usage statistics off.
//   - opencode: a provider of the kind @ai-sdk/openai-compatible, which is built in; a title for the session, or the model is
//     asked for one; OPENCODE_DISABLE_MODELS_FETCH, OPENCODE_DISABLE_AUTOUPDATE and OPENCODE_DISABLE_LSP_DOWNLOAD; and
//     npm_config_offline, since it installs its plugin package into its configuration in the background. Its npm package is
//     a script that copies the program of another package, so that package is installed instead: Linux x64 only.
package hosts
