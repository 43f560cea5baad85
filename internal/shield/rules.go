package shield

import "slices"

// A FindingAction is the action that a rule requires. If a text has several findings, the strongest action is taken.
type FindingAction int

const (
	// ActionNote reports the finding and does not change the verdict. It is used, for example, for a text about
	// attacks.
	ActionNote FindingAction = iota
	// ActionFlag labels the text and leaves it unchanged.
	ActionFlag
	// ActionBlank replaces the text.
	ActionBlank
)

// An injectionRule matches a sentence that contains a word for each needed concept, close to each other.
type injectionRule struct {
	name string
	act  FindingAction
	why  string
	// need contains sets of concepts. The sentence must contain, for each set, a word with at least one of its
	// concepts. The word for the first set is the anchor.
	need []concepts
	// maxSpan is the maximum distance, in words, between the anchor and any other needed word.
	maxSpan int
	// ordered reports whether the words must occur in the order of need.
	ordered bool
	// exemptIf disables the rule if a word with one of these concepts occurs up to three words before the anchor.
	exemptIf concepts
	// acrossSentences reports whether the needed words may be in different sentences.
	acrossSentences bool
	// ignoresQuoted reports whether an anchor in quotation marks is skipped, because it is an example of a request.
	ignoresQuoted bool
	// evenIfHarmless reports whether the action remains the same in a harmless context. For other rules it becomes
	// ActionNote there, see harmlessContext.
	evenIfHarmless bool
	// origin selects the texts to which the rule applies.
	origin TextOrigin
}

// TextOrigin is the origin of a text: a definition or a result.
type TextOrigin int

// The origins of texts. A rule for FromAnywhere applies to definitions and to results.
const (
	FromAnywhere TextOrigin = iota
	// FromDefinitions is for texts that a server declares, and FromResults for texts in the results of calls.
	FromDefinitions
	FromResults
)

// injectionRules returns all rules, grouped by class of attack. A rule describes what a sentence would make a model do,
// and not the words of one attack. A rule uses ActionBlank only if no known honest definition matches it; otherwise it
// uses ActionFlag.
func injectionRules() []injectionRule {
	return slices.Concat(overrideRules(), concealmentRules(), exfiltrationRules(), impersonationRules(), excessRules())
}

// overrideRules returns the rules against texts that cancel the instructions of the model.
func overrideRules() []injectionRule {
	return []injectionRule{
		{name: "override", act: ActionBlank, why: "tells the model to ignore its instructions", need: []concepts{conceptIgnore,
			conceptPrior | conceptSafety | conceptYou, conceptStrong | conceptSystem}, maxSpan: 7, ordered: true,
			exemptIf: conceptNot, acrossSentences: true},
		{name: "override", act: ActionBlank,
			why:  "tells the model to ignore its instructions, or assigns another role or task",
			need: []concepts{conceptSetaside}, exemptIf: conceptNot},
		{name: "override", act: ActionBlank, why: "tells the model to ignore its instructions, in another language",
			need: []concepts{conceptWignore, conceptWinstr,
				conceptWprior | conceptWuser | conceptWsystem | conceptWsecret | conceptWsend | conceptWtell},
			maxSpan: 5, exemptIf: conceptNot},
		{name: "override", act: ActionFlag, why: "tells the model to ignore its instructions, in another language",
			need: []concepts{conceptWignore, conceptWinstr}, maxSpan: 4, exemptIf: conceptNot},
		{name: "override", act: ActionFlag, why: "tells the model to ignore its instructions", need: []concepts{conceptIgnore,
			conceptPrior | conceptYou, conceptInstr}, maxSpan: 6, ordered: true, exemptIf: conceptNot,
			origin: FromDefinitions},
		{name: "override", act: ActionFlag, why: "tells the model to ignore its instructions", need: []concepts{conceptIgnore,
			conceptYou, conceptPrior}, maxSpan: 2, ordered: true, exemptIf: conceptNot},
		{name: "override", act: ActionFlag, why: "says that the model's instructions do not apply",
			need: []concepts{conceptOff | conceptIgnore, conceptYou, conceptPrior | conceptStrong,
				conceptStrong | conceptInstr | conceptSystem}, maxSpan: 12, exemptIf: conceptNot},
		{name: "unguard", act: ActionBlank, why: "tells the model to ignore safety measures", need: []concepts{conceptIgnore,
			conceptYou | conceptPrior | conceptWhole, conceptSafety}, maxSpan: 5, ordered: true, exemptIf: conceptNot,
			origin: FromDefinitions},
		{name: "unguard", act: ActionFlag, why: "tells the model to ignore safety measures", need: []concepts{conceptIgnore,
			conceptYou | conceptPrior | conceptWhole, conceptSafety}, maxSpan: 4, ordered: true, exemptIf: conceptNot,
			origin: FromResults},
		{name: "unguard", act: ActionFlag, why: "tells the model to ignore safety measures", need: []concepts{conceptSafety,
			conceptIgnore, conceptLater | conceptYou | conceptAuth}, maxSpan: 8, exemptIf: conceptNot,
			origin: FromDefinitions},
		{name: "unguard", act: ActionFlag, why: "says that safety measures do not apply",
			need: []concepts{conceptSafety | conceptStrong, conceptOff, conceptScope}, maxSpan: 12,
			exemptIf: conceptNot, origin: FromDefinitions},
		{name: "system-prompt", act: ActionFlag, why: "asks for the conversation so far",
			need: []concepts{conceptRevealing, conceptConvo}, maxSpan: 6, ordered: true, exemptIf: conceptNot,
			origin: FromDefinitions},
		{name: "foreign-order", act: ActionFlag, why: "tells a model what to do, in another language",
			need: []concepts{conceptWmodel, conceptWdo | conceptWsend | conceptWignore,
				conceptWsecret | conceptConvo | conceptWsystem | conceptWtell | conceptAddress | conceptPlace},
			maxSpan: 30},
		{name: "foreign-order", act: ActionFlag,
			why: "tells the model to send the user's data to an address, in another language",
			need: []concepts{conceptWsend | conceptWdo, conceptWuser | conceptWsecret | conceptConvo,
				conceptAddress},
			maxSpan: 24, origin: FromResults},
		{name: "foreign-order", act: ActionFlag,
			why: "tells the model to act in secret, in another language", need: []concepts{conceptWtell,
				conceptWnot, conceptWsend | conceptWdo, conceptWuser}, maxSpan: 24, origin: FromResults},
		{name: "foreign-order", act: ActionFlag,
			why:  "tells the model to act on everything without asking, in another language",
			need: []concepts{conceptUnasked, conceptWdo, conceptWprior}, maxSpan: 10, evenIfHarmless: true,
			origin: FromResults},
		{name: "foreign-order", act: ActionFlag, why: "addresses the model that reads it, in another language",
			need: []concepts{conceptWreader, conceptWmodel}, maxSpan: 6, origin: FromResults},
		{name: "respond", act: ActionFlag, why: "tells the model what to answer",
			need: []concepts{conceptRevealing | conceptSend, conceptRespond}, maxSpan: 8, ordered: true,
			exemptIf: conceptNot},
		{name: "system-prompt", act: ActionBlank, why: "asks for the system prompt",
			need: []concepts{conceptRevealing, conceptYou | conceptWhole, conceptSystem}, maxSpan: 5, ordered: true,
			exemptIf: conceptNot},
		{name: "system-prompt", act: ActionFlag, why: "asks for the system prompt",
			need: []concepts{conceptRevealing, conceptSystem}, maxSpan: 4, ordered: true, exemptIf: conceptNot,
			origin: FromResults},
		{name: "system-prompt", act: ActionBlank, why: "asks for the system prompt",
			need: []concepts{conceptWsend, conceptWsystem}, maxSpan: 10},
	}
}

// concealmentRules returns the rules against texts that keep something secret from the user.
func concealmentRules() []injectionRule {
	return []injectionRule{
		{name: "secrecy", act: ActionBlank, why: "keeps something from the user", need: []concepts{conceptCovert,
			conceptUser | conceptMust | conceptRead | conceptSend | conceptTool | conceptYou | conceptSystem},
			maxSpan: 14},
		{name: "secrecy", act: ActionBlank, why: "keeps something from the user", need: []concepts{conceptNot,
			conceptTell, conceptUser}, maxSpan: 7, ordered: true, exemptIf: conceptWhenif, origin: FromDefinitions},
		{name: "secrecy", act: ActionFlag, why: "keeps something from the user", need: []concepts{conceptNot,
			conceptTell, conceptUser}, maxSpan: 7, ordered: true, origin: FromDefinitions},
		{name: "secrecy", act: ActionFlag, why: "keeps something from the user", need: []concepts{conceptNot,
			conceptTell, conceptUser}, maxSpan: 4, ordered: true, origin: FromResults},
		{name: "secrecy", act: ActionFlag, why: "hides its instructions from the user", need: []concepts{conceptCovert,
			conceptStrong | conceptInstr}, maxSpan: 4, ordered: true, origin: FromResults},
		{name: "secrecy", act: ActionFlag, why: "does something without telling the user", need: []concepts{conceptQuiet,
			conceptOut | conceptSecret | conceptPlace | conceptConvo | conceptFollow}, maxSpan: 10},
		{name: "secrecy", act: ActionFlag, why: "keeps something from the user, in another language",
			need: []concepts{conceptWtell, conceptWnot, conceptWuser}, maxSpan: 6, origin: FromDefinitions},
		{name: "secrecy", act: ActionFlag, why: "keeps something from the user, in another language",
			need: []concepts{conceptWtell, conceptWnot, conceptWuser}, maxSpan: 8, origin: FromResults},

		{name: "deceit", act: ActionFlag, why: "tells the model to deceive the user", need: []concepts{conceptDeceit,
			conceptUser | conceptRespond, conceptMust | conceptWhenif | conceptYou}, maxSpan: 16, exemptIf: conceptNot,
			origin: FromDefinitions},
	}
}

// exfiltrationRules returns the rules against texts that send secrets or the conversation elsewhere.
func exfiltrationRules() []injectionRule {
	return []injectionRule{
		{name: "take-secret", act: ActionBlank, why: "tells the model to read and send a secret",
			need: []concepts{conceptRead, conceptPlace, conceptSend}, maxSpan: 14, ordered: true, exemptIf: conceptNot,
			origin: FromDefinitions},
		{name: "take-secret", act: ActionFlag, why: "tells the model to read and send a secret",
			need: []concepts{conceptRead, conceptPlace, conceptSend, conceptYou | conceptMust}, maxSpan: 14,
			exemptIf: conceptNot, evenIfHarmless: true, origin: FromResults},
		{name: "take-file", act: ActionFlag, why: "tells the model to read and send a file with secrets",
			need: []concepts{conceptPlace, conceptRead, conceptSend}, maxSpan: 16,
			exemptIf: conceptNot | conceptMention, origin: FromDefinitions},
		{name: "shell", act: ActionFlag, why: "tells the model to run a download", need: []concepts{conceptRead, conceptAddress,
			conceptFollow}, maxSpan: 14, ordered: true, exemptIf: conceptNot, origin: FromDefinitions},
		{name: "take-file", act: ActionFlag, why: "tells the model to read a file with secrets", need: []concepts{conceptRead,
			conceptPlace}, maxSpan: 8, ordered: true, exemptIf: conceptNot, origin: FromDefinitions},
		{name: "take-file", act: ActionBlank, why: "tells the model to read a file with secrets, in another language",
			need: []concepts{conceptPlace, conceptWsend | conceptWignore | conceptWtell}, maxSpan: 14},
		{name: "take-file", act: ActionFlag, why: "tells the model to change a file that a shell or a login trusts",
			need: []concepts{conceptChange | conceptSend, conceptPlace}, maxSpan: 10, ordered: true,
			exemptIf: conceptNot, origin: FromDefinitions},
		{name: "take-secret", act: ActionFlag, why: "tells the model to put a secret into a call", need: []concepts{conceptRead,
			conceptConvo | conceptSystem, conceptParam}, maxSpan: 16, exemptIf: conceptNot, origin: FromDefinitions},
		{name: "send-secret", act: ActionFlag, why: "tells the model to send a secret", need: []concepts{conceptOut,
			conceptSecret | conceptPlace | conceptConvo}, maxSpan: 8, ordered: true, exemptIf: conceptNot,
			origin: FromDefinitions},
		{name: "send-secret", act: ActionFlag, why: "tells the model to send a secret elsewhere", need: []concepts{conceptOut,
			conceptSecret | conceptPlace | conceptConvo, conceptAddress | conceptOutside}, maxSpan: 14, ordered: true,
			exemptIf: conceptNot, origin: FromResults},
		{name: "send-secret", act: ActionFlag, why: "tells the model to send a secret, in another language",
			need: []concepts{conceptWsecret, conceptWsend}, maxSpan: 10, exemptIf: conceptWnot | conceptNot,
			origin: FromDefinitions},
		{name: "send-away", act: ActionFlag, why: "tells the model to send data elsewhere", need: []concepts{conceptOut,
			conceptAddress | conceptOutside}, maxSpan: 10, ordered: true, exemptIf: conceptNot | conceptMention,
			origin: FromDefinitions},
		{name: "harvest", act: ActionFlag, why: "asks for the conversation", need: []concepts{conceptConvo,
			conceptSecret | conceptSystem}, maxSpan: 14, origin: FromDefinitions},
		{name: "harvest", act: ActionFlag, why: "asks for the list of the model's tools", need: []concepts{conceptConvo,
			conceptPathname}, maxSpan: 20, origin: FromResults},
	}
}

// impersonationRules returns the rules against texts that pretend to come from the user or the system.
func impersonationRules() []injectionRule {
	return []injectionRule{
		{name: "impersonation", act: ActionBlank, why: "claims to be the user", need: []concepts{conceptGave}},
		{name: "impersonation", act: ActionFlag, why: "claims to be the user",
			need: []concepts{conceptSend | conceptRemoving | conceptChange | conceptOut, conceptMe,
				conceptAddress | conceptWhole}, maxSpan: 14, ordered: true, origin: FromDefinitions},
		{name: "impersonation", act: ActionFlag, why: "claims to be the user",
			need: []concepts{conceptOut | conceptRemoving, conceptMe, conceptAddress}, maxSpan: 14, ordered: true,
			origin: FromResults},
		{name: "impersonation", act: ActionFlag, why: "claims to be the user",
			need: []concepts{conceptRemoving | conceptChange | conceptOut | conceptMoney, conceptMe,
				conceptWhole | conceptMe | conceptPathname}, maxSpan: 8, ordered: true, origin: FromDefinitions,
			ignoresQuoted: true},
		{name: "authority", act: ActionFlag, why: "claims to be the system", need: []concepts{conceptAuth},
			origin: FromDefinitions},
		{name: "authority", act: ActionBlank, why: "claims to be the system and gives instructions", need: []concepts{conceptAuth,
			conceptMust | conceptIgnore | conceptShell,
			conceptYou | conceptCall | conceptFollow | conceptIgnore | conceptScope}, maxSpan: 24, ordered: true},
		{name: "encoded-order", act: ActionBlank, why: "tells the model to decode and follow encoded text",
			need: []concepts{conceptDecoding, conceptFollow}, maxSpan: 4, ordered: true, exemptIf: conceptNot},

		{name: "phish", act: ActionFlag, why: "sends the user to an address", need: []concepts{conceptTell, conceptUser,
			conceptAddress}, maxSpan: 20, ordered: true, exemptIf: conceptNot, origin: FromDefinitions},
	}
}

// excessRules returns the rules against texts that make a model act beyond the purpose of the tool.
func excessRules() []injectionRule {
	return []injectionRule{
		{name: "shell", act: ActionFlag, why: "tells the model to run a command", need: []concepts{conceptMust | conceptCall,
			conceptShell}, maxSpan: 14, ordered: true, exemptIf: conceptNot, origin: FromDefinitions},
		{name: "harm", act: ActionFlag, why: "may damage the machine or delete data", need: []concepts{conceptHarm},
			exemptIf: conceptNot | conceptMention, origin: FromDefinitions},
		{name: "order-tool", act: ActionFlag, why: "tells the model to change a file with another tool",
			need: []concepts{conceptPathname, conceptIdent, conceptCall}, maxSpan: 14, origin: FromDefinitions},
		{name: "order-tool", act: ActionFlag, why: "tells the model to use another tool on the user's data",
			need: []concepts{conceptCall, conceptIdent, conceptTool, conceptRemoving | conceptChange}, maxSpan: 14,
			ordered: true, origin: FromDefinitions},
		{name: "order-tool", act: ActionFlag, why: "tells the model to use another tool", need: []concepts{conceptMust, conceptCall,
			conceptIdent, conceptPathname | conceptAddress | conceptPlace}, maxSpan: 24, ordered: true,
			evenIfHarmless: true, origin: FromResults},
		{name: "tamper", act: ActionFlag, why: "changes what the user asked for", need: []concepts{conceptChange,
			conceptParam | conceptIdent, conceptDespite}, maxSpan: 16, origin: FromDefinitions},
		{name: "tamper", act: ActionFlag, why: "changes what the user asked for", need: []concepts{conceptUsedby,
			conceptChange, conceptParam | conceptIdent}, maxSpan: 16, ordered: true, origin: FromDefinitions},
		{name: "tamper", act: ActionFlag, why: "changes the recipient of a payment or message",
			need: []concepts{conceptWhenif | conceptMust, conceptChange, conceptPayee}, maxSpan: 16, ordered: true,
			origin: FromDefinitions},
		{name: "money", act: ActionFlag, why: "tells the model to move the user's money", need: []concepts{conceptMoney, conceptMe,
			conceptMoney}, maxSpan: 10, origin: FromDefinitions},
		{name: "shadow", act: ActionFlag, why: "contains instructions about other tools", need: []concepts{conceptOther,
			conceptMust | conceptChange | conceptCall | conceptYou}, maxSpan: 20, origin: FromDefinitions},
		{name: "shadow", act: ActionFlag, why: "redirects calls of another tool to this one", need: []concepts{conceptNot,
			conceptCall, conceptIdent, conceptTool, conceptCall, conceptTool, conceptMust}, maxSpan: 18, ordered: true,
			acrossSentences: true, origin: FromDefinitions},
		{name: "shadow", act: ActionFlag, why: "tells the model to use this tool in place of another one", need: []concepts{conceptTool,
			conceptChange, conceptIdent, conceptTool, conceptNot, conceptCall}, maxSpan: 14, ordered: true,
			acrossSentences: true, origin: FromDefinitions},
		{name: "later", act: ActionFlag, why: "will behave differently later", need: []concepts{conceptLater,
			conceptShell | conceptHarm | conceptSend | conceptFollow}, maxSpan: 10, ordered: true,
			origin: FromDefinitions},
		{name: "praise", act: ActionFlag, why: "advertises itself", need: []concepts{conceptBest},
			origin: FromDefinitions},
	}
}
