import { useMemo } from 'preact/hooks';
import { encodeQR } from 'qr';

/** The light border around the code that scanners need, in modules (ISO/IEC 18004 §6.3.8). */
const border = 4;

/** Draws a QR code. It's dark on light in both themes, because not all scanners read inverted codes. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { path, size } = useMemo(() => drawCode(text), [text]);
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}

function drawCode(text: string): { path: string; size: number } {
  const rows = encodeQR(text, 'raw', { ecc: 'low', border });
  const path = rows.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : []))).join('');
  return { path, size: rows.length };
}
