// A Mastra agent with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

const env = process.env;
const milliseconds = Number(env.CASE_TIMEOUT_S) * 1000;
const model = { id: `lab/${env.OPENAI_MODEL}`, url: env.OPENAI_BASE_URL, apiKey: env.OPENAI_API_KEY };
const print = (event) => console.log(JSON.stringify(event));

const lookup = createTool({
  id: "lookup",
  description: "Looks up facts about a query.",
  inputSchema: z.object({ query: z.string() }),
  execute: async ({ query }, { abortSignal }) => {
    const url = `${env.CASE_TOOL_URL}?query=${encodeURIComponent(query)}`;
    return (await fetch(url, { signal: abortSignal })).text();
  },
});
const instructions = "Use your tool, then answer.";
const about = { id: "researcher", name: "Researcher", description: "Researches a question." };
const researcher = new Agent({ ...about, instructions, model, tools: { lookup } });
const outer = new Agent({ id: "outer", name: "Outer", instructions, model, agents: { researcher } });
const agent = env.CASE_AGENT === "sub" ? outer : researcher;

const ways = {
  timeout: () => ({ modelSettings: { timeout: { totalMs: milliseconds } } }),
  "step-timeout": () => ({ modelSettings: { timeout: { stepMs: milliseconds } } }),
  "abort-signal": () => ({ abortSignal: AbortSignal.timeout(milliseconds) }),
};

async function answer(options) {
  if (env.CASE_STREAM !== "1") return agent.generate(env.CASE_QUESTION, options);
  const result = await agent.stream(env.CASE_QUESTION, options);
  let text = "";
  for await (const piece of result.textStream) text += piece;
  if (result.error) throw result.error;
  return { text, finishReason: await result.finishReason, steps: await result.steps, response: await result.response };
}

print({ event: "start" });
try {
  const { text, finishReason, steps, response } = await answer(ways[env.CASE_WAY]());
  const ended = finishReason === "aborted"; // an aborted run returns what it has, and does not throw
  const open = steps.flatMap((step) => step.toolCalls).length - steps.flatMap((step) => step.toolResults).length;
  const left = ended ? { messages: response.messages?.length ?? 0, open_tool_calls: open } : null;
  const error = finishReason === "stop" ? null : `finishReason: ${finishReason}`;
  print({ event: "end", outcome: ended ? "timeout" : "answer", text, error, left });
} catch (error) {
  const outcome = /TimeoutError|AbortError/.test(error.name) ? "timeout" : "error";
  print({ event: "end", outcome, text: null, error: `${error.name}: ${error.message}`, left: null });
}
for await (const _ of process.stdin);
