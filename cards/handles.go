package cards

// The keys of the handles that cards use, see [deck.Context]. The first three keys have the same values as in the agent
// system that Drawbridge is compatible with.
const (
	// DelegateKey is the key of a [Delegate], which carries out tasks for the card task.
	DelegateKey = "delegate"
	// SaaSGatewayKey is the key of a [SaaSGateway], which finds and runs actions for the card saas-action.
	SaaSGatewayKey = "saasGateway"
	// MemoryStoreKey is the key of a [MemoryStore], which stores the note of the card memory. Without it, the note is
	// stored in the memory of the process.
	MemoryStoreKey = "memoryStore"

	// WorkspaceKey is the key of a [Workspace], in which the card memory keeps its note, in place of a MemoryStore.
	WorkspaceKey = "workspace"
	// PlanApproverKey is the key of a [PlanApprover], which the card exit_plan_mode asks.
	PlanApproverKey = "planApprover"
	// ChecklistsKey is the key of [Checklists], which the cards todo_read and todo_set share.
	ChecklistsKey = "checklists"
	// JobsKey is the key of [Jobs], which the cards that run commands share.
	JobsKey = "jobs"
	// ReadGateKey is the key of a [ReadGate], which requires that a run reads an existing file before it changes the
	// file. Without a gate, files may be changed without being read.
	ReadGateKey = "readGate"
	// ReadTrailKey is the key of a [deck.ReadTrail], which stores the names of the files and pages that were read.
	ReadTrailKey = "readTrail"
	// UndoKey is the key of an [UndoLog], which stores the earlier content of changed files.
	UndoKey = "undo"
	// ProtectedFilesKey is the key of [ProtectedFiles], which reports the files that searches must skip.
	ProtectedFilesKey = "protectedFiles"
	// ClientProfileKey is the key of a [ClientProfile], which returns the profile that confines a client's commands.
	ClientProfileKey = "clientProfile"
	// ShellEnvKey is the key of a [ShellEnv], which adds variables to the environment of commands.
	ShellEnvKey = "shellEnv"
	// WebClientKey is the key of a [WebClient]. Without it, the card webfetch uses a client that reaches only public
	// addresses.
	WebClientKey = "webClient"
	// WebSearchKey is the key of a [WebSearch], which finds pages for the card websearch.
	WebSearchKey = "webSearch"
	// ResourceReaderKey is the key of a [ResourceReader], with which the card read reads mcp:// URIs.
	ResourceReaderKey = "resourceReader"
)
