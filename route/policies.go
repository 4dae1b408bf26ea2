package route

// DefaultDeadLetter names the topic for records that the target refuses, if a route names none; {topic} in it stands for the source topic.
const DefaultDeadLetter = "{topic}.dead-letter"

// Policies are the words by which a route may answer each trouble, by the trouble's key under route.on of the native file. The first of them holds
// where nothing is said. A word that does nothing yet is not among them.
func Policies() map[string][]string {
	return map[string][]string{
		"truncated":      {"continue", "halt", "recopy"},
		"recreated":      {"continue", "halt", "recopy"},
		"diverged":       {"halt", "continue", "recopy"},
		"deleted":        {"halt", "stop"},
		"target_lost":    {"halt", "continue", "resend"},
		"foreign_writer": {"continue", "halt"},
		"oversized":      {"halt", "skip", "dead-letter", "raise"},
		"refused":        {"halt", "skip", "dead-letter"},
	}
}
