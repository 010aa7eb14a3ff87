import {
  type CallEvent,
  handoffStages,
  isHandoffStage,
  type Stage,
  stagesBefore,
  toState,
  transitionsFor,
} from '../../domain/calls/call-states.ts';

/** SQL: a call's stage (see domain/calls/call-states.ts). A call that has ended keeps its last hand-off. */
const stageSql = `CASE calls.state WHEN '${toState('open')}' THEN calls.handoff ELSE calls.state END`;

/** SQL: a call is at one of these stages. The values are text, because the conditions of partial indexes don't match parameters. */
export function isAt(...stages: readonly Stage[]): string {
  const before = stages.filter((stage) => !isHandoffStage(stage)).map((stage) => `state = '${stage}'`);
  const dialing = stages.filter(isHandoffStage);
  if (dialing.length > 0) before.push(`(state = '${toState('open')}' AND handoff IN (${dialing.map((stage) => `'${stage}'`).join(', ')}))`);
  return `(${before.join(' OR ')})`;
}

export const isQueued = isAt('queued');
/** SQL: the call can still be cancelled or blocked, or lapse. */
export const isUndialed = isAt(...stagesBefore('cancel'));
export const isDialing = isAt(...handoffStages);

/** SQL: the stage that an event moves a call to. It returns NULL if the event can't happen at the call's stage. */
export function stageAfterSql(event: Exclude<CallEvent, 'outcome'>): string {
  const cases = transitionsFor(event).flatMap(({ from, to }) => from.map((stage) => `WHEN '${stage}' THEN '${to}'`));
  return `CASE ${stageSql} ${cases.join(' ')} END`;
}

/** The table's primary key. The index by contact alone contains only calls that were handed off. */
export const callKey: readonly ['campaign_id', 'contact_id'] = ['campaign_id', 'contact_id'];

/** SQL: the number of a row of `calls` is on a do-not-call list. @param at the SQL of the time */
export function isListed(at: string): string {
  const listsPartner = 'CASE WHEN a.has_do_not_call IS NOT NULL OR p.has_do_not_call IS NOT NULL THEN p.id END';
  return `(SELECT 1 FROM accounts a CROSS JOIN partners p WHERE a.id = calls.account_id AND p.id = a.partner_id
    AND ${listsPartner} IS NOT NULL AND (SELECT 1 FROM do_not_call d WHERE d.partner_id = ${listsPartner} AND d.phone = calls.phone
      AND (d.account_id IS NULL OR d.account_id = a.id) AND (d.ends_at IS NULL OR d.ends_at >= ${at}) LIMIT 1) IS NOT NULL) IS NOT NULL`;
}
